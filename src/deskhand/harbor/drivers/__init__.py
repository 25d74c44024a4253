"""What acts on the desktop inside the sandbox: the hand, or the image's own tools."""
