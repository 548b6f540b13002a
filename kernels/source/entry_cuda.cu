// The device's kernels for scenes without instances.
#include "device_kernels.h"
