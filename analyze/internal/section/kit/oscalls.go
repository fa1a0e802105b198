package kit

import "strings"

// Groups of calls of the operating system, by their purpose.
const (
	OSDisk       = "disk"
	groupNetwork = "network"
	groupLock    = "lock"
	OSSleep      = "sleep"
	groupMemory  = "memory"
	groupDevice  = "device"
	groupProcess = "process"
	groupOther   = "other"
)

var OSGroups = []string{OSDisk, groupNetwork, groupLock, OSSleep, groupMemory, groupDevice, groupProcess,
	groupOther}

// OSGroup is the group of a call of the operating system, for the functions that nsys traces by itself according to its
// user guide. Functions that work on any file descriptor count as disk if they read or write, and as network if they
// wait.
func OSGroup(name string) string {
	name = strings.TrimLeft(name, "_")
	for _, suffix := range []string{"64", "_chk", "_unlocked", "_nocancel", "2", "4"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && osGroup[base] != "" {
			name = base
		}
	}
	if g, ok := osGroup[name]; ok {
		return g
	}
	for _, p := range osPrefixes {
		if strings.HasPrefix(name, p.prefix) {
			return p.group
		}
	}
	return groupOther
}

var osPrefixes = []struct{ prefix, group string }{
	{"pthread_mutex", groupLock}, {"pthread_cond", groupLock}, {"pthread_rwlock", groupLock}, {"pthread_spin", groupLock},
	{"pthread_barrier", groupLock}, {"sem_", groupLock}, {"sigwait", OSSleep}, {"sigtimedwait", OSSleep},
	{"pthread_", groupProcess}, {"aio_", OSDisk}, {"mq_", groupNetwork}, {"msg", groupNetwork},
	{"epoll_", groupNetwork},
	{"posix_spawn", groupProcess}, {"wait", groupProcess},
}

// osGroup is by name, without the prefixes and suffixes of glibc.
var osGroup = group(map[string]string{
	OSDisk: "read write pread pwrite readv writev preadv pwritev open openat open_by_handle_at creat close fopen fclose " +
		"fdopen freopen fread fwrite fflush fgets fgetc fputs fputc fgetws fgetwc fputws fputwc getc getwc getdelim getline putc " +
		"putwc ungetc puts printf fprintf vprintf vfprintf dprintf vdprintf fscanf scanf fseek fseeko ftell rewind fsync " +
		"fdatasync sync syncfs sync_file_range fallocate posix_fallocate ftruncate truncate stat fstat lstat statx fstatat rename " +
		"renameat unlink unlinkat link symlink mkdir rmdir opendir readdir closedir scandir flock lockf fcntl dup sendfile " +
		"splice tee vmsplice copy_file_range io_submit io_getevents io_setup io_destroy mkfifo mknod mkstemp mkostemp mkdtemp " +
		"tmpfile readahead posix_fadvise access faccessat chmod chown lseek umount mount name_to_handle_at",
	groupNetwork: "socket connect accept bind listen send sendto sendmsg sendmmsg recv recvfrom recvmsg recvmmsg shutdown " +
		"poll ppoll select pselect getaddrinfo gethostbyname socketpair pipe",
	groupLock: "futex flockfile ftrylockfile funlockfile semop semtimedop semget semctl",
	OSSleep:   "sleep usleep nanosleep clock_nanosleep pause sched_yield sigsuspend alarm",
	groupMemory: "mmap munmap mremap mprotect madvise mlock munlock mlockall munlockall brk sbrk malloc free calloc realloc " +
		"posix_memalign aligned_alloc memalign valloc pvalloc mbind move_pages migrate_pages set_mempolicy shm_open shm_unlink " +
		"shmat shmdt shmget shmctl msync mincore remap_file_pages process_vm_readv process_vm_writev memfd_create backtrace " +
		"backtrace_symbols backtrace_symbols_fd",
	groupDevice: "ioctl",
	groupProcess: "fork vfork clone execve execv execvp execl execvpe execle system popen pclose kill killpg tgkill raise " +
		"waitpid waitid wait wait3 signal sigaction sigprocmask exit abort dlopen dlclose ptrace setns unshare",
})

func group(lists map[string]string) map[string]string {
	of := map[string]string{}
	for g, list := range lists {
		for _, name := range strings.Fields(list) {
			of[name] = g
		}
	}
	return of
}
