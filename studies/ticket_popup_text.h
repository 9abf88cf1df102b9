/* ticket_popup_text.h - a text for a study that was given none. */
#ifndef PARE_STUDIES_TICKET_POPUP_TEXT_H
#define PARE_STUDIES_TICKET_POPUP_TEXT_H
#include <pare/base.h>
PARE_MUST_USE pare_status popup_text(const char *path, uint64_t seed, pare_err *err);
#endif
