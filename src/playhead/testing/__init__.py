"""For tests of agents: a model server that says what a script says.

``scripted`` is the server, ``script`` its replies, ``dialects`` the wire forms it speaks
(docs/reference/testing.md).
"""
