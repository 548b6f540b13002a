#include "render.h"
extern "C" void tessera_test_nothing(void) {}
