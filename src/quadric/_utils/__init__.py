"""Helpers without mathematics: checks of arrays and options, files, memory, text, threads."""
