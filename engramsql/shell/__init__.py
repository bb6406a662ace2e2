"""The shell: what a person types, and what comes back."""
