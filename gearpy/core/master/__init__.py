"""The decisions of a master: applications, slots, and the state that its log keeps."""
