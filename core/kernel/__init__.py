"""The AST of the wire, typed: reading, checking, its canonical form, and where its leaves lie."""
