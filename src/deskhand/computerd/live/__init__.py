"""The live view: a page on which a person sees the desktop as it changes, what agents do there, and may take over."""
