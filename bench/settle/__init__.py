"""How long must one wait after an action? Recorded traces, policies replayed over them, and what each is worth."""
