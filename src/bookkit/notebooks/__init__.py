"""Chapters: found, run, kept, made reproducible, and their claims counted."""
