"""The contract: what crosses the wire or goes to etcd, and the words of both programs; validation is all it does."""
