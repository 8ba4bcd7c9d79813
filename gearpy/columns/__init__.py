"""Makes columns of Arrow from records, by one set of rules that refuse what they would change.

May import core and messages. Who needs no columns must not load Arrow: `values`, `types`,
`row_schema` and `workable` import it where it is used.
"""
