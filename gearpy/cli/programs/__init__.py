"""Commands about a program: run it, draw its plan, compare it with Spark.

- `program`: loads the program that ``FILE[:ATTR]`` or ``MODULE[:ATTR]`` names.
- `run`: one application in this process, until its input ends.
- `plan`: prints the physical plan of a program, and what becomes of its state in another one.
- `plan_commands`: the arguments of ``gear plan``.
- `plan_graph`: a physical plan as a drawing of other programs: Mermaid, or the DOT language of
  Graphviz.
- `plan_layout`: where the boxes of a layered drawing stand, and the corners of the lines between
  them.
- `plan_svg`: a physical plan as a picture, which every browser shows: SVG, without any other
  program.
- `plan_text`: a physical plan, and what two of them differ in, as lines of text.
- `verify`: runs a program here and as a Spark query on the same records, and tells what differs.
- `verify_commands`: the arguments of ``gear verify``.
"""
