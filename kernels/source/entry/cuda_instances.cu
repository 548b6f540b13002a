// The device's kernels for scenes with instances.
#define TESSERA_INSTANCES
#include "entry/device_kernels.h"
