"""The site: what Sphinx reads, how it runs, the scripts that pages need, and a server to look at it."""
