/* interrupt.h - signals: a command that is told to stop saves what it can and leaves nothing half
 * written. */
#ifndef PARE_CLI_INTERRUPT_H
#define PARE_CLI_INTERRUPT_H

/* From now on the first SIGINT, SIGTERM or SIGHUP sets the flag below; the second one removes
 * temporary files and ends the process, as it would without us. What is ignored stays so. */
void interrupt_watch(void);
/* What pare_exec.stop points to. */
extern volatile int interrupt_flag;
/* The first signal ends the process as well: for work that does not look at the flag. */
void interrupt_at_once(void);
/* Ends the process by the signal that came first, so that a shell sees it; returns when there was
 * none. */
void interrupt_end(void);

/* The temporary files of the output `out` are removed when the process is ended at once. Once per
 * process. */
void interrupt_cleans(const char *out);
/* The temporary file of one more output, as long as there is room: before or after that call. */
void interrupt_cleans_also(const char *out);
/* A file-size limit is a failed write with its message, not a signal. */
void interrupt_file_size(void);
#endif
