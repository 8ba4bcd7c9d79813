"""Views of a cluster for people: plain data, made of the answers of its roles.

- `model`: `AppView`, `ProcessorView`, `OverviewView` and their parts. Start here.
- `app`: makes the view of an application and of one of its processors.
- `look`: answers that were got together, and how long they are kept for rates.
- `overview`: makes the view of a cluster.
- `findings`: what is wrong, where, why, and what would help; `gear why` and each headline.
- `draining`: what a drain waits for, now and then, for who waits for its end.
- `measured`: figures of tasks, processors and executors, from measurements of two times.
- `layout`: places of processors in a drawing.
- `drawing`: the graph of an application as SVG, for notebooks.
- `notebook`: an application, a plan or records as HTML for a cell of a notebook.
- `changes`: changes of applications that run, in words.
- `alerts`: rules about applications, and when they begin and cease to hold.
- `text`: numbers, times and foreign text, as people read them.

Pure: the caller gives the answers of the cluster, and the time. The terminal, the page, reports and
notebooks draw the same views, so they never disagree.
"""
