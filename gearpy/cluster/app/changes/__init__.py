"""Changes of one application, on their way to its versions.

- `asked`: AskedChanges: changes that clients ask for, while their programs are being loaded.
- `autoscaling`: requests for changes of one application, as its core of autoscale decides.
"""
