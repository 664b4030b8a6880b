"""The contract: what crosses the wire or goes to etcd, and nothing else; no behaviour beyond validation lives here."""
