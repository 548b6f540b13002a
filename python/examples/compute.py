"""Makes a picture a quarter as large with a built-in kernel, from an array and to an array."""

import numpy

from tessera_farm import Farm, Kernel

rows, columns = numpy.mgrid[0:64, 0:96].astype(numpy.float32)
image = numpy.stack([rows, columns, rows + columns], axis=-1)
with Farm() as farm:
    kernel = Kernel("builtin:resize", (48, 32), {"image": image}, {"filter": "box"}, channels=3)
    small = farm.compute(kernel, timeout=300)
    print(small.shape, small.dtype, float(numpy.mean(small)))
