"""Views of a cluster for people: plain data, made of the answers of its roles.

Pure: the caller gives the answers of the cluster, and the time. The terminal, the page, reports and
notebooks draw the same views, so they never disagree.
"""
