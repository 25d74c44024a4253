"""A desktop as a service: HTTP with a token beside an X display, and the launcher that runs as another account."""
