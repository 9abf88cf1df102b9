/* manual.h - the list of commands, the man page and the completion of bash made from it. */
#ifndef PARE_CLI_MANUAL_H
#define PARE_CLI_MANUAL_H
#include <pare/base.h>
#include <stdio.h>

typedef struct command {
    const char *name, *args, *summary;
    int (*run)(int argc, char **argv);
    const char *group; /* heading before it, or NULL */
} command;

/* Both take the list (it ends in a row of NULL) and ask each command to print its own part; they
 * return an exit code. */
int manual_page(FILE *to, const command *list);
int manual_completion(FILE *to, const command *list);
#endif
