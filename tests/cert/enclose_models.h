#include "../support/enclose_models.h" /* moved: until all branches include <enclose_models.h> */
