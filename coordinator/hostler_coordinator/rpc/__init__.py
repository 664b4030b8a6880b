"""The gRPC edge: certificates to callers, messages to models, refusals to status codes; meaning is `service`'s."""
