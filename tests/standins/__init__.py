"""Servers on loopback that speak the vendors' protocols, for the vendors' own SDKs to talk to."""
