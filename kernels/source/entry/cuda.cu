// The device's kernels for scenes without instances.
#include "entry/device_kernels.h"
