"""Links and the tasks between them: credit, loss, alignment of epochs, and partitioning."""
