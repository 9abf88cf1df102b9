/* version.c - the version of the library. */

const char *pare_version(void);
#ifndef PARE_VERSION
#define PARE_VERSION "0.2.0"
#endif
const char *pare_version(void)
{
    return PARE_VERSION;
}
