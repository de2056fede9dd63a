"""One run over many files: what goes where, the stages it passes, and what happened."""
