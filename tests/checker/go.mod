module gearpy.example/checker

go 1.19

require github.com/anishathalye/porcupine v1.0.3
