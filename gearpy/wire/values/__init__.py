"""Values of users <-> bytes.

- `extensions`: values beyond plain msgpack: tuples, sets, times, decimals, big ints, paths, numpy,
  records.
- `forms`: how instances of a class are taken apart into columns of plain values, and put together
  again.
- `class_names`: classes by name: ``module:Qualified.Name``, alike in every process that runs a
  program.
- `numpy_values`: scalars and arrays of numpy <-> their type and their bytes.
- `payload`: the records of a whole batch <-> bytes.
- `pieces`: values with large bytes in them, which are copied once.
- `arrow_payload`: the rows of a table <-> bytes: ``u8 padding | padding | Arrow IPC stream``.
- `records`: which classes can travel between processes, and under which names.
"""
