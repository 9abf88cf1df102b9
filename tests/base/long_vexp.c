/* Tests src/base/vexp.c on every f32 from 2^-30 to 105 and its negative. */
#define STEP 1
#include "test_vexp.c"
