#include "render.h"
#include "traverse.h"
extern "C" bool tessera_test_nothing(const SceneView* scene, const Ray* ray, Hit* hit) { return intersect_closest(*scene, *ray, 0, hit); }
