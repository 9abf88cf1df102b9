/* interrupt.h - signals: nothing half written stays behind. */
#ifndef PARE_CLI_INTERRUPT_H
#define PARE_CLI_INTERRUPT_H

/* From now on SIGINT, SIGTERM and SIGHUP remove the temporary files of the output `out` before they
 * end the process, as they would without us. Once per process. */
void interrupt_cleans(const char *out);
/* The temporary file of one more output, as long as there is room: before or after that call. */
void interrupt_cleans_also(const char *out);
/* What is said on stderr when one of these signals ends the process; the last call counts. Calls
 * come one after the other, from any thread. */
void interrupt_says(const char *command, const char *line);
/* A file-size limit is a failed write with its message, not a signal. */
void interrupt_file_size(void);
#endif
