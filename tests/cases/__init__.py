"""Faults that people have reported of tools for this job, each with its whole kind. Names say which (S1 to S29)."""
