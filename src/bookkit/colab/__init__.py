"""Copies of the chapters for Colab: plain Markdown, and a first cell that brings the package."""
