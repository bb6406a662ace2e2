"""Files that engramdb-python writes and reads: views with their keys, slot indexes, bundle manifests.

Its stores need no conversion: a store directory is a source like any other.
"""
