// A file system that shows another folder, and takes its time for every write: slowdisk FOLDER MOUNTPOINT. The milliseconds for each
// write and each sync are in the file FOLDER.delay, which may be changed at any time.
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static const char *folder;

static const char *there(const char *path, char *buffer) {
    snprintf(buffer, PATH_MAX, "%s%s", folder, path);
    return buffer;
}

#define THERE(path) there(path, (char[PATH_MAX]){0})

static void take_time(void) {
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s.delay", folder);
    FILE *file = fopen(name, "r");
    long milliseconds = 0;
    if (file) {
        if (fscanf(file, "%ld", &milliseconds) != 1) milliseconds = 0;
        fclose(file);
    }
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static int result(long value) { return value < 0 ? -errno : (int)value; }

static int do_getattr(const char *path, struct stat *status, struct fuse_file_info *info) {
    return result(info ? fstat((int)info->fh, status) : lstat(THERE(path), status));
}

static int do_open(const char *path, struct fuse_file_info *info) {
    int file = open(THERE(path), info->flags);
    info->fh = (uint64_t)file;
    return file < 0 ? -errno : 0;
}

static int do_create(const char *path, mode_t mode, struct fuse_file_info *info) {
    int file = open(THERE(path), info->flags | O_CREAT, mode);
    info->fh = (uint64_t)file;
    return file < 0 ? -errno : 0;
}

static int do_read(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *info) {
    (void)path;
    return result(pread((int)info->fh, buffer, size, offset));
}

static int do_write(const char *path, const char *buffer, size_t size, off_t offset, struct fuse_file_info *info) {
    (void)path;
    take_time();
    return result(pwrite((int)info->fh, buffer, size, offset));
}

static int do_fsync(const char *path, int data, struct fuse_file_info *info) {
    (void)path, (void)data;
    take_time();
    return result(fsync((int)info->fh));
}

static int do_truncate(const char *path, off_t size, struct fuse_file_info *info) {
    return result(info ? ftruncate((int)info->fh, size) : truncate(THERE(path), size));
}

static int do_release(const char *path, struct fuse_file_info *info) {
    (void)path;
    return result(close((int)info->fh));
}

static int do_unlink(const char *path) { return result(unlink(THERE(path))); }
static int do_mkdir(const char *path, mode_t mode) { return result(mkdir(THERE(path), mode)); }
static int do_rmdir(const char *path) { return result(rmdir(THERE(path))); }
static int do_access(const char *path, int mode) { return result(access(THERE(path), mode)); }
static int do_statfs(const char *path, struct statvfs *status) { return result(statvfs(THERE(path), status)); }

static int do_chmod(const char *path, mode_t mode, struct fuse_file_info *info) {
    (void)info;
    return result(chmod(THERE(path), mode));
}

static int do_rename(const char *from, const char *to, unsigned flags) {
    return flags ? -EINVAL : result(rename(THERE(from), THERE(to)));
}

static int do_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *info,
                      enum fuse_readdir_flags flags) {
    (void)offset, (void)info, (void)flags;
    DIR *list = opendir(THERE(path));
    if (!list) return -errno;
    for (struct dirent *entry; (entry = readdir(list));) fill(buffer, entry->d_name, NULL, 0, 0);
    closedir(list);
    return 0;
}

int main(int count, char **arguments) {
    if (count != 3) return 64;
    folder = arguments[1];
    static const struct fuse_operations operations = {
        .getattr = do_getattr, .open = do_open, .create = do_create, .read = do_read, .write = do_write,
        .fsync = do_fsync, .truncate = do_truncate, .release = do_release, .unlink = do_unlink, .mkdir = do_mkdir,
        .rmdir = do_rmdir, .access = do_access, .statfs = do_statfs, .chmod = do_chmod, .rename = do_rename,
        .readdir = do_readdir,
    };
    char *options[] = {arguments[0], "-f", arguments[2], NULL};
    return fuse_main(3, options, &operations, NULL);
}
