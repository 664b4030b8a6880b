"""The meaning of each RPC: models in, models out, refusals as exceptions; no gRPC in here."""
