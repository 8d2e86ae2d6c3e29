"""Listing → text, by family of languages."""
