"""The commands of a table's life: build, view, index, verify, check."""
