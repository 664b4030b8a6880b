"""The control plane, the operator's command line and the console; what runs on a host lives in hostler_agent."""
