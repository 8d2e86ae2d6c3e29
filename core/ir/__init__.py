"""The one algebra: micro-ops and index arithmetic are the same interned `Value`s."""
