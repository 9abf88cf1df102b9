#include "../support/enclose_quad.h" /* moved: until all branches include <enclose_quad.h> */
