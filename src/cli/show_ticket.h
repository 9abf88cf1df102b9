/* show_ticket.h - what pare ticket was asked, what it made, and how it says so. */
#ifndef PARE_SRC_CLI_SHOW_TICKET_H
#define PARE_SRC_CLI_SHOW_TICKET_H
#include "reduce_command.h"

typedef struct ticket_opts {
    size_t mode, method, coding;
    double bits;          /* --bits; 0: not given */
    double scale;         /* 0: chosen */
    const char *required; /* "EPS,P": no ticket, only how wide one must be; or NULL */
    reduction r;
} ticket_opts;

/* --required (ticket_required.c) */
PARE_MUST_USE pare_status ticket_required(cli *c, const ticket_opts *o);

/* self: ticket_opts */
void show_ticket(const cli *c, const void *self);
PARE_MUST_USE pare_status show_ticket_json(cli *c, const void *self);
#endif
