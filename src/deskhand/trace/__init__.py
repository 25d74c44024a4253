"""The record of one session: what the agent saw, did and got, as files and as one page a person opens."""

from deskhand.trace.page import write_page
from deskhand.trace.recorder import TraceRecorder

__all__ = ["TraceRecorder", "write_page"]
