"""What every room uses: arrays, times, hashing, files, workers, words for people. Knows nothing of crawling."""
