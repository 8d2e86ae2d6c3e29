"""Where programs are kept: one protocol (`store`), values that prove themselves (`record`), and four that keep them."""
