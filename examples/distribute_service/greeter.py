"""The service: answers each connection with a line, on a port that the system chooses."""

import os
import socket

with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    while True:
        connection, _ = server.accept()
        with connection:
            connection.sendall(f"hello from process {os.getpid()}\n".encode())
