"""Web server for stores: a study in progress, and the report of a finished one.

Part of the reading half: it sees the store's folder and nothing else of a study, writes nothing there, and answers to
this machine alone.
"""
