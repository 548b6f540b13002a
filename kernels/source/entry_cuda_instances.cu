// The device's kernels for scenes with instances.
#define TESSERA_INSTANCES
#include "device_kernels.h"
